output "id" {
  description = "The OCID of the instance."
  value       = oci_core_instance.this.id
}

output "name" {
  description = "The name of the instance."
  value       = oci_core_instance.this.display_name
}

output "private_ip" {
  description = "The private IPv4 address."
  value       = oci_core_instance.this.private_ip
}

output "public_ip" {
  description = "The public IPv4 address; null without one."
  value       = var.public_ip ? oci_core_instance.this.public_ip : null
}

output "boot_volume_id" {
  description = "The OCID of the boot volume."
  value       = oci_core_instance.this.boot_volume_id
}

output "availability_domain" {
  description = "The availability domain that the instance is in."
  value       = oci_core_instance.this.availability_domain
}

output "fault_domain" {
  description = "The fault domain that the instance is in."
  value       = oci_core_instance.this.fault_domain
}
