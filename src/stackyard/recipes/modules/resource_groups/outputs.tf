output "resources" {
  description = "The guests in the form of `resources`, for the module resource_normalizer."
  value       = local.resources
}

output "problems" {
  description = "What is wrong with the data, one sentence each, for the module resource_normalizer."
  value       = local.problems
}
