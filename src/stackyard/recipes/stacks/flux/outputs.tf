output "namespace" {
  description = "The namespace of Flux."
  value       = module.flux.namespace
}

output "repository_files" {
  description = "The names of the files that the bootstrap wrote to the repository."
  value       = module.flux.repository_files
}
