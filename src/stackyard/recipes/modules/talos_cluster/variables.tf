variable "cluster_name" {
  description = "The name of the cluster."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.cluster_name))
    error_message = "cluster_name is \"${var.cluster_name}\": it has lower-case letters, digits and hyphens."
  }
}

variable "nodes" {
  description = "The nodes of the cluster, by name. `role` is controlplane or worker, `node_name` the Proxmox node, `address` the static address with its prefix, such as 10.0.0.11/24."
  type = map(object({
    role           = string
    node_name      = string
    vm_id          = number
    address        = string
    cores          = optional(number, 2)
    memory_mib     = optional(number, 4096)
    disk_gib       = optional(number, 20)
    mac_address    = optional(string)
    config_patches = optional(list(string), [])
  }))

  validation {
    condition     = length(var.nodes) > 0
    error_message = "nodes is an empty map: nothing would be left of the cluster."
  }

  # One rule for all of it: OpenTofu stops at the first rule that fails.
  validation {
    condition = length(concat(
      [for name, node in var.nodes : name if !contains(["controlplane", "worker"], node.role)],
      [for name, node in var.nodes : name if !can(cidrhost(node.address, 0))],
      [for name, node in var.nodes : name if length([for other in values(var.nodes) : 1 if split("/", other.address)[0] == split("/", node.address)[0]]) > 1],
      [for name, node in var.nodes : name if length([for other in values(var.nodes) : 1 if other.vm_id == node.vm_id]) > 1],
      # An even number of control planes survives no more failures than one less does.
      [for count in [length([for node in values(var.nodes) : node if node.role == "controlplane"])] : count if count % 2 == 0],
    )) == 0
    error_message = join("\n", concat(
      [
        for name, node in var.nodes :
        "nodes[\"${name}\"].role is \"${node.role}\", which is neither controlplane nor worker."
        if !contains(["controlplane", "worker"], node.role)
      ],
      [
        for name, node in var.nodes :
        "nodes[\"${name}\"].address is \"${node.address}\", which is not an address with a prefix, such as 10.0.0.11/24."
        if !can(cidrhost(node.address, 0))
      ],
      [
        for name, node in var.nodes :
        "nodes[\"${name}\"].address is \"${node.address}\", which another node has too."
        if length([for other in values(var.nodes) : 1 if split("/", other.address)[0] == split("/", node.address)[0]]) > 1
      ],
      [
        for name, node in var.nodes :
        "nodes[\"${name}\"].vm_id is ${node.vm_id}, which another node has too."
        if length([for other in values(var.nodes) : 1 if other.vm_id == node.vm_id]) > 1
      ],
      [
        for count in [length([for node in values(var.nodes) : node if node.role == "controlplane"])] :
        "nodes has ${count} control planes: etcd needs an odd number."
        if count % 2 == 0
      ],
    ))
  }
}

variable "bootstrap_node" {
  description = "The control plane that bootstraps etcd, once; without it, the first one by name."
  type        = string
  default     = null

  validation {
    condition     = var.bootstrap_node == null ? true : try(var.nodes[var.bootstrap_node].role == "controlplane", false)
    error_message = "bootstrap_node is \"${coalesce(var.bootstrap_node, "null")}\", which is not a control plane of nodes."
  }
}

variable "endpoint_host" {
  description = "The name or address of the Kubernetes API; without it, `vip`, or the address of the node that bootstraps etcd."
  type        = string
  default     = null
}

variable "vip" {
  description = "An address that the control planes share. It answers once etcd runs, so it is for Kubernetes, not for talosctl."
  type        = string
  default     = null

  validation {
    condition     = var.vip == null ? true : !contains([for node in values(var.nodes) : split("/", node.address)[0]], var.vip)
    error_message = "vip is \"${coalesce(var.vip, "null")}\", which is the address of a node."
  }
}

variable "gateway" {
  description = "The IPv4 gateway of the nodes."
  type        = string
}

variable "nameservers" {
  description = "The DNS servers of the nodes."
  type        = list(string)

  validation {
    condition     = length(var.nameservers) > 0
    error_message = "nameservers is empty: a node could not fetch an image."
  }
}

variable "talos_version" {
  description = "The version of Talos, 1.12 or newer, such as v1.12.1. A running node is upgraded by talosctl, not by this."
  type        = string

  validation {
    condition     = can(regex("^v1\\.(1[2-9]|[2-9][0-9])\\.[0-9]+$", var.talos_version))
    error_message = "talos_version is \"${var.talos_version}\": it has to be v1.12.0 or newer, such as v1.12.1."
  }
}

variable "kubernetes_version" {
  description = "The version of Kubernetes, such as 1.35.0. It has to be one that this version of Talos supports."
  type        = string

  validation {
    condition     = can(regex("^1\\.[0-9]+\\.[0-9]+$", var.kubernetes_version))
    error_message = "kubernetes_version is \"${var.kubernetes_version}\", which is not a version such as 1.35.0."
  }
}

variable "schematic_id" {
  description = "The schematic of the Talos image factory; without it, the one with qemu-guest-agent only."
  type        = string
  default     = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.schematic_id))
    error_message = "schematic_id is \"${var.schematic_id}\", which is not 64 hexadecimal digits."
  }
}

variable "image_datastore_id" {
  description = "The datastore of the Talos image on each Proxmox node; it has to hold the content `import`."
  type        = string
  default     = "local"
}

variable "datastore_id" {
  description = "The datastore of the disks."
  type        = string
  default     = "local-lvm"
}

variable "bridge" {
  description = "The bridge of the network interfaces."
  type        = string
  default     = "vmbr0"
}

variable "vlan_id" {
  description = "The VLAN of the network interfaces; without it, untagged."
  type        = number
  default     = null
}

variable "cpu_type" {
  description = "The type of the CPUs. Talos needs x86-64-v2 at least."
  type        = string
  default     = "x86-64-v2-AES"
}

variable "cni" {
  description = "What Talos installs as the network of Kubernetes: flannel, or none if you bring your own."
  type        = string
  default     = "flannel"

  validation {
    condition     = contains(["flannel", "none"], var.cni)
    error_message = "cni is \"${var.cni}\", which is neither flannel nor none."
  }
}

variable "allow_scheduling_on_control_planes" {
  description = "Whether pods run on control planes too."
  type        = bool
  default     = false
}

variable "config_patches" {
  description = "Patches of the machine configuration of every node, as YAML."
  type        = list(string)
  default     = []
}

variable "control_plane_patches" {
  description = "Patches of the machine configuration of control planes, as YAML."
  type        = list(string)
  default     = []
}

variable "worker_patches" {
  description = "Patches of the machine configuration of workers, as YAML."
  type        = list(string)
  default     = []
}

variable "apply_mode" {
  description = "How a changed machine configuration is applied. With auto, all nodes that need a reboot for it reboot at the same time."
  type        = string
  default     = "auto"

  validation {
    condition     = contains(["auto", "no_reboot", "reboot", "staged", "staged_if_needing_reboot"], var.apply_mode)
    error_message = "apply_mode is \"${var.apply_mode}\"; it is auto, no_reboot, reboot, staged or staged_if_needing_reboot."
  }
}

variable "check_health" {
  description = "Whether an apply waits until the cluster is healthy. Set it to false to plan while the cluster is down."
  type        = bool
  default     = true
}

variable "health_timeout" {
  description = "How long to wait until the cluster is healthy."
  type        = string
  default     = "10m"
}

variable "protection" {
  description = "Whether Proxmox refuses to remove the VMs and their disks."
  type        = bool
  default     = false
}

variable "tags" {
  description = "More tags of the VMs, which become groups of the inventory."
  type        = list(string)
  default     = []
}
