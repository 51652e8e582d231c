resource "oci_core_instance" "this" {
  compartment_id      = var.compartment_id
  availability_domain = var.availability_domain
  fault_domain        = var.fault_domain
  display_name        = var.name
  shape               = var.shape

  # Only a flexible shape takes a number of OCPUs and a size of memory.
  dynamic "shape_config" {
    for_each = var.shape_config == null ? [] : [var.shape_config]

    content {
      ocpus         = shape_config.value.ocpus
      memory_in_gbs = shape_config.value.memory_gib
    }
  }

  source_details {
    source_type             = "image"
    source_id               = var.image_id
    boot_volume_size_in_gbs = var.boot_volume_gib
    kms_key_id              = var.kms_key_id
  }

  create_vnic_details {
    subnet_id        = var.subnet_id
    assign_public_ip = var.public_ip
    private_ip       = var.private_ip
    hostname_label   = var.hostname_label
    nsg_ids          = var.network_security_group_ids
  }

  metadata = merge(
    { ssh_authorized_keys = join("\n", var.ssh_public_keys) },
    var.user_data == null ? {} : { user_data = base64encode(var.user_data) },
  )

  # Only version 2 of the metadata service: a request that a program is tricked into has no header for it.
  instance_options {
    are_legacy_imds_endpoints_disabled = true
  }

  is_pv_encryption_in_transit_enabled = var.encryption_in_transit
  preserve_boot_volume                = var.preserve_boot_volume
  freeform_tags                       = var.tags
}
