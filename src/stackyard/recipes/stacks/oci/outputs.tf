output "instances" {
  description = "The OCIDs and addresses of the virtual machines, by name."
  value = {
    for name, one in module.instance : name => {
      id         = one.id
      private_ip = one.private_ip
      public_ip  = one.public_ip
    }
  }
}

output "ansible_inventory" {
  description = "The hosts for Ansible: `stackyard inventory` writes them."
  value = {
    hosts = {
      for name, one in module.instance : name => merge(
        {
          ansible_host    = coalesce(one.public_ip, one.private_ip)
          oci_instance_id = one.id
          groups          = concat(["oci"], var.instances[name].groups)
        },
        var.instances[name].ssh_user == null ? {} : { ansible_user = var.instances[name].ssh_user },
      )
    }
    groups = {}
  }
}
