output "description" {
  description = "What this stack is for."
  value       = var.description
}
