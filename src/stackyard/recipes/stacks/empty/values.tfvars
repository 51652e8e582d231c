description = "A new stack"
