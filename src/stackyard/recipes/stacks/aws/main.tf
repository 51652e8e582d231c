locals {
  networks  = coalesce(var.networks, {})
  subnets   = coalesce(var.subnets, {})
  instances = coalesce(var.instances, {})
  buckets   = coalesce(var.buckets, {})
}

module "network" {
  source   = "../../../modules/aws_network"
  for_each = local.networks

  name    = each.key
  cidr    = each.value.cidr
  subnets = { for name, subnet in local.subnets : name => subnet if subnet.network == each.key }
  tags    = each.value.tags
}

module "instance" {
  source   = "../../../modules/aws_ec2_instance"
  for_each = local.instances

  name                   = each.key
  ami_id                 = each.value.ami_id
  instance_type          = each.value.instance_type
  subnet_id              = module.network[local.subnets[each.value.subnet].network].subnet_ids[each.value.subnet]
  vpc_id                 = module.network[local.subnets[each.value.subnet].network].vpc_id
  private_ip             = each.value.private_ip
  public_ip              = each.value.public_ip
  ingress                = each.value.ingress
  ssh_public_key         = each.value.ssh_public_key
  key_name               = each.value.key_name
  iam_instance_profile   = each.value.iam_instance_profile
  user_data              = each.value.user_data
  root_volume_gib        = each.value.root_volume_gib
  termination_protection = each.value.termination_protection
  tags                   = each.value.tags
}

module "bucket" {
  source   = "../../../modules/aws_s3_bucket"
  for_each = local.buckets

  name          = each.key
  versioning    = each.value.versioning
  kms_key_arn   = each.value.kms_key_arn
  force_destroy = each.value.force_destroy
  tags          = each.value.tags
}
