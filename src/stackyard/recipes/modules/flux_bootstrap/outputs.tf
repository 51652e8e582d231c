output "id" {
  description = "The ID of the installation, which is its namespace."
  value       = flux_bootstrap_git.this.id
}

output "namespace" {
  description = "The namespace of Flux."
  value       = kubernetes_namespace_v1.flux.metadata[0].name
}

output "path" {
  description = "The folder of the cluster in the git repository."
  value       = flux_bootstrap_git.this.path
}

output "age_secret_name" {
  description = "The name of the secret with the age key."
  value       = kubernetes_secret_v1.sops_age.metadata[0].name
}

output "repository_files" {
  description = "The names of the files that the bootstrap wrote to the repository."
  value       = keys(flux_bootstrap_git.this.repository_files)
}
