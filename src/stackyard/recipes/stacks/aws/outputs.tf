output "vpc_ids" {
  description = "The IDs of the VPCs, by name."
  value       = { for name, one in module.network : name => one.vpc_id }
}

output "subnet_ids" {
  description = "The IDs of the subnets, by name."
  value       = merge([for one in module.network : one.subnet_ids]...)
}

output "instances" {
  description = "The IDs, ARNs and addresses of the instances, by name."
  value = {
    for name, one in module.instance : name => {
      id         = one.id
      arn        = one.arn
      private_ip = one.private_ip
      public_ip  = one.public_ip
    }
  }
}

output "bucket_arns" {
  description = "The ARNs of the buckets, by name."
  value       = { for name, one in module.bucket : name => one.arn }
}

output "ansible_inventory" {
  description = "The hosts for Ansible: `stackyard inventory` writes them."
  value = {
    hosts = {
      for name, one in module.instance : name => merge(
        {
          ansible_host    = coalesce(one.public_ip, one.private_ip)
          aws_instance_id = one.id
          groups          = concat(["aws"], local.instances[name].groups)
        },
        local.instances[name].ssh_user == null ? {} : { ansible_user = local.instances[name].ssh_user },
      )
    }
    groups = {}
  }
}
