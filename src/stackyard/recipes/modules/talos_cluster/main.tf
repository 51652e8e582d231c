locals {
  control_planes = { for name, node in var.nodes : name => node if node.role == "controlplane" }
  workers        = { for name, node in var.nodes : name => node if node.role == "worker" }
  addresses      = { for name, node in var.nodes : name => split("/", node.address)[0] }

  control_plane_addresses = [for name in sort(keys(local.control_planes)) : local.addresses[name]]
  worker_addresses        = [for name in sort(keys(local.workers)) : local.addresses[name]]

  first_control_plane = sort(keys(local.control_planes))[0]
  bootstrap_node      = coalesce(var.bootstrap_node, local.first_control_plane)
  endpoint_host       = coalesce(var.endpoint_host, var.vip, local.addresses[local.bootstrap_node])
  endpoint            = "https://${local.endpoint_host}:6443"

  installer = "factory.talos.dev/nocloud-installer/${var.schematic_id}:${var.talos_version}"
}

# One download for each Proxmox node: a datastore such as `local` belongs to one node.
resource "proxmox_download_file" "image" {
  for_each = toset([for node in values(var.nodes) : node.node_name])

  node_name    = each.key
  datastore_id = var.image_datastore_id
  content_type = "import"
  file_name    = "talos-${var.talos_version}-${substr(var.schematic_id, 0, 8)}.qcow2"
  url          = "https://factory.talos.dev/image/${var.schematic_id}/${var.talos_version}/nocloud-amd64.qcow2"
}

resource "proxmox_virtual_environment_vm" "node" {
  for_each = var.nodes

  name            = each.key
  node_name       = each.value.node_name
  vm_id           = each.value.vm_id
  description     = "Talos ${each.value.role} of ${var.cluster_name}"
  tags            = sort(distinct(concat(["talos", each.value.role], var.tags)))
  protection      = var.protection
  stop_on_destroy = true

  agent {
    enabled = true
    timeout = "2m"
  }

  cpu {
    cores = each.value.cores
    type  = var.cpu_type
  }

  memory {
    dedicated = each.value.memory_mib
  }

  disk {
    datastore_id = var.datastore_id
    interface    = "scsi0"
    import_from  = proxmox_download_file.image[each.value.node_name].id
    size         = each.value.disk_gib
  }

  network_device {
    bridge      = var.bridge
    vlan_id     = var.vlan_id
    mac_address = each.value.mac_address
  }

  # The image reads its first address from here: that is how the node is reached before it has a configuration.
  initialization {
    datastore_id = var.datastore_id

    ip_config {
      ipv4 {
        address = each.value.address
        gateway = var.gateway
      }
    }

    dns {
      servers = var.nameservers
    }
  }

  operating_system {
    type = "l26"
  }

  # A newer image is for new nodes. Existing ones are upgraded by Talos; another disk would cost their etcd.
  lifecycle {
    ignore_changes = [disk[0].import_from]
  }
}

resource "talos_machine_secrets" "this" {
  talos_version = var.talos_version

  # They are made once, for the version that the cluster begins with.
  lifecycle {
    ignore_changes = [talos_version]
  }
}

locals {
  network_patches = {
    for name, node in var.nodes : name => yamlencode({
      machine = {
        network = {
          nameservers = var.nameservers
          interfaces = [merge(
            {
              deviceSelector = { physical = true }
              dhcp           = false
              addresses      = [node.address]
              routes         = [{ network = "0.0.0.0/0", gateway = var.gateway }]
            },
            node.role == "controlplane" && var.vip != null ? { vip = { ip = var.vip } } : {},
          )]
        }
      }
    })
  }

  # Talos 1.12 generates this document with a name of its own: both keys have to be set to replace it.
  hostname_patches = {
    for name in keys(var.nodes) : name => yamlencode({
      apiVersion = "v1alpha1"
      kind       = "HostnameConfig"
      auto       = "off"
      hostname   = name
    })
  }

  # The image is on the disk already, so nothing is wiped: `install` only says what an upgrade installs.
  install_patch = yamlencode({
    machine = { install = { disk = "/dev/sda", image = local.installer, wipe = false } }
  })

  cluster_patch = yamlencode({
    cluster = {
      allowSchedulingOnControlPlanes = var.allow_scheduling_on_control_planes
      network                        = { cni = { name = var.cni } }
    }
  })

  role_patches = {
    controlplane = concat([local.cluster_patch], var.control_plane_patches)
    worker       = var.worker_patches
  }
}

data "talos_machine_configuration" "node" {
  for_each = var.nodes

  cluster_name       = var.cluster_name
  cluster_endpoint   = local.endpoint
  machine_type       = each.value.role
  machine_secrets    = talos_machine_secrets.this.machine_secrets
  talos_version      = var.talos_version
  kubernetes_version = var.kubernetes_version
  docs               = false
  examples           = false
}

resource "talos_machine_configuration_apply" "node" {
  for_each = var.nodes

  client_configuration        = talos_machine_secrets.this.client_configuration
  machine_configuration_input = data.talos_machine_configuration.node[each.key].machine_configuration
  node                        = local.addresses[each.key]
  apply_mode                  = var.apply_mode

  config_patches = concat(
    [local.install_patch, local.network_patches[each.key], local.hostname_patches[each.key]],
    local.role_patches[each.value.role],
    var.config_patches,
    each.value.config_patches,
  )

  depends_on = [proxmox_virtual_environment_vm.node]

  # A new VM has no configuration yet, whatever was applied to the one before it.
  lifecycle {
    replace_triggered_by = [proxmox_virtual_environment_vm.node[each.key].id]
  }
}

resource "talos_machine_bootstrap" "this" {
  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = local.addresses[local.bootstrap_node]

  depends_on = [talos_machine_configuration_apply.node]

  # etcd is formed once in the life of a cluster, also if the node that formed it is gone.
  lifecycle {
    ignore_changes = [client_configuration, node]
  }
}

# It waits for the cluster itself, for no fixed time. It is read in the apply while a node is to be configured.
data "talos_cluster_health" "this" {
  count = var.check_health ? 1 : 0

  client_configuration   = talos_machine_secrets.this.client_configuration
  endpoints              = local.control_plane_addresses
  control_plane_nodes    = local.control_plane_addresses
  worker_nodes           = local.worker_addresses
  skip_kubernetes_checks = var.cni == "none"

  timeouts = {
    read = var.health_timeout
  }

  depends_on = [talos_machine_configuration_apply.node, talos_machine_bootstrap.this]
}

resource "talos_cluster_kubeconfig" "this" {
  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = local.addresses[local.bootstrap_node]

  depends_on = [data.talos_cluster_health.this, talos_machine_bootstrap.this]
}

data "talos_client_configuration" "this" {
  cluster_name         = var.cluster_name
  client_configuration = talos_machine_secrets.this.client_configuration
  endpoints            = local.control_plane_addresses
  nodes                = concat(local.control_plane_addresses, local.worker_addresses)
}
