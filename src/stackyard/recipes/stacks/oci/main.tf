module "instance" {
  source   = "../../../modules/oci_instance"
  for_each = var.instances

  name                       = each.key
  compartment_id             = var.compartment_id
  availability_domain        = each.value.availability_domain
  fault_domain               = each.value.fault_domain
  shape                      = each.value.shape
  shape_config               = each.value.shape_config
  image_id                   = each.value.image_id
  boot_volume_gib            = each.value.boot_volume_gib
  subnet_id                  = var.subnets[each.value.subnet]
  public_ip                  = each.value.public_ip
  private_ip                 = each.value.private_ip
  hostname_label             = each.value.hostname_label
  network_security_group_ids = each.value.network_security_group_ids
  ssh_public_keys            = each.value.ssh_public_keys
  user_data                  = each.value.user_data
  tags                       = merge(var.tags, each.value.tags)
}
