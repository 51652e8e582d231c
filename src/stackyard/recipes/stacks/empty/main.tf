# Resources and modules of this stack. Code that several stacks share belongs into a module below `modules/`.
