locals {
  tags = merge(var.tags, { Name = var.name })
}

resource "aws_security_group" "this" {
  count = var.create_security_group ? 1 : 0

  name_prefix = "${var.name}-"
  description = "Traffic of the instance ${var.name}"
  vpc_id      = var.vpc_id

  tags = local.tags

  # The instance moves to the new group before the old one goes.
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "this" {
  for_each = var.create_security_group ? var.ingress : {}

  security_group_id = aws_security_group.this[0].id
  description       = each.key
  cidr_ipv4         = each.value.cidr
  ip_protocol       = each.value.protocol
  from_port         = each.value.protocol == "-1" ? null : each.value.from_port
  to_port           = each.value.protocol == "-1" ? null : coalesce(each.value.to_port, each.value.from_port)

  tags = local.tags
}

resource "aws_vpc_security_group_egress_rule" "this" {
  count = var.create_security_group ? 1 : 0

  security_group_id = aws_security_group.this[0].id
  description       = "everything out"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"

  tags = local.tags
}

resource "aws_key_pair" "this" {
  count = var.ssh_public_key == null ? 0 : 1

  key_name_prefix = "${var.name}-"
  public_key      = var.ssh_public_key

  tags = local.tags
}

resource "aws_instance" "this" {
  ami                         = var.ami_id
  instance_type               = var.instance_type
  subnet_id                   = var.subnet_id
  private_ip                  = var.private_ip
  associate_public_ip_address = var.public_ip
  vpc_security_group_ids      = concat(aws_security_group.this[*].id, var.security_group_ids)
  key_name                    = var.ssh_public_key == null ? var.key_name : aws_key_pair.this[0].key_name
  iam_instance_profile        = var.iam_instance_profile
  user_data                   = var.user_data
  disable_api_termination     = var.termination_protection

  # Version 2 of the metadata service: a request that a program is tricked into sends no token.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = var.metadata_hop_limit
  }

  root_block_device {
    encrypted             = true
    kms_key_id            = var.kms_key_arn
    volume_size           = var.root_volume_gib
    volume_type           = var.root_volume_type
    delete_on_termination = true
    tags                  = local.tags
  }

  tags = local.tags

  lifecycle {
    precondition {
      condition     = var.create_security_group || length(var.security_group_ids) > 0
      error_message = "${var.name} has no security group: name some in security_group_ids, or set create_security_group."
    }
  }
}
