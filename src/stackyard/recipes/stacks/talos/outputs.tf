output "endpoint" {
  description = "The address of the Kubernetes API."
  value       = module.cluster.endpoint
}

output "addresses" {
  description = "The addresses of the nodes, by name."
  value       = module.cluster.addresses
}

output "vm_ids" {
  description = "The IDs of the nodes in Proxmox, by name."
  value       = module.cluster.vm_ids
}

output "installer_image" {
  description = "The image for `talosctl upgrade --image`."
  value       = module.cluster.installer_image
}

output "talosconfig" {
  description = "The configuration of talosctl, with the key of an administrator."
  value       = module.cluster.talosconfig
  sensitive   = true
}

output "kubeconfig" {
  description = "The configuration of kubectl, with the key of an administrator."
  value       = module.cluster.kubeconfig
  sensitive   = true
}

output "kubernetes" {
  description = "The address and the certificates of the Kubernetes API, for the stack that installs Flux."
  value       = module.cluster.kubernetes
  sensitive   = true
}
