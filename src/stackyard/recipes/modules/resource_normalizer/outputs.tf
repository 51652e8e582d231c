output "vms" {
  description = "Every VM that is enabled, by its host name, with all of its settings."
  value       = local.vms

  precondition {
    condition     = length(local.problems) == 0
    error_message = join("\n", local.problems)
  }
}

output "containers" {
  description = "Every container that is enabled, by its host name, with all of its settings."
  value       = local.lxcs

  # Again, because `-target` may leave out the other output.
  precondition {
    condition     = length(local.problems) == 0
    error_message = join("\n", local.problems)
  }
}

output "os_images" {
  description = "The names of the cloud images that the VMs need, each once."
  value       = local.images
}

output "ids" {
  description = "The Proxmox IDs of all guests that are enabled, by host name."
  value       = { for name, same in local.named : name => same[0].vm_id }
}

output "ansible_hosts" {
  description = "For the inventory: the groups of each host."
  value       = local.ansible_hosts
}

output "ansible_groups" {
  description = "For the inventory: the variables of each group, as far as its hosts agree on them."
  value       = local.ansible_groups
}
