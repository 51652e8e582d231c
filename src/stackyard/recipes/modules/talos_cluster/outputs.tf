output "cluster_name" {
  description = "The name of the cluster."
  value       = var.cluster_name
}

output "endpoint" {
  description = "The address of the Kubernetes API."
  value       = local.endpoint
}

output "addresses" {
  description = "The addresses of the nodes, by name."
  value       = local.addresses
}

output "control_plane_addresses" {
  description = "The addresses of the control planes."
  value       = local.control_plane_addresses
}

output "worker_addresses" {
  description = "The addresses of the workers."
  value       = local.worker_addresses
}

output "vm_ids" {
  description = "The IDs of the nodes in Proxmox, by name."
  value       = { for name, vm in proxmox_virtual_environment_vm.node : name => vm.vm_id }
}

output "installer_image" {
  description = "The image for `talosctl upgrade --image`."
  value       = local.installer
}

output "talosconfig" {
  description = "The configuration of talosctl, with the key of an administrator."
  value       = data.talos_client_configuration.this.talos_config
  sensitive   = true
}

output "kubeconfig" {
  description = "The configuration of kubectl, with the key of an administrator."
  value       = talos_cluster_kubeconfig.this.kubeconfig_raw
  sensitive   = true
}

output "kubernetes" {
  description = "The address and the certificates of the Kubernetes API, in PEM, for providers of another stack."
  value = {
    host                   = talos_cluster_kubeconfig.this.kubernetes_client_configuration.host
    cluster_ca_certificate = base64decode(talos_cluster_kubeconfig.this.kubernetes_client_configuration.ca_certificate)
    client_certificate     = base64decode(talos_cluster_kubeconfig.this.kubernetes_client_configuration.client_certificate)
    client_key             = base64decode(talos_cluster_kubeconfig.this.kubernetes_client_configuration.client_key)
  }
  sensitive = true
}
