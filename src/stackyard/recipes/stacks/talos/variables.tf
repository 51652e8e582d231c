variable "proxmox_connection" {
  description = "How to reach Proxmox, in secrets.tfvars. Leave it out if the environment has PROXMOX_VE_ENDPOINT and PROXMOX_VE_API_TOKEN."
  type = object({
    endpoint  = string
    api_token = string
    insecure  = optional(bool, false)
  })
  default   = null
  sensitive = true
}

variable "cluster_name" {
  description = "The name of the cluster."
  type        = string
}

variable "talos_version" {
  description = "The version of Talos, 1.12 or newer, such as v1.12.1."
  type        = string
}

variable "kubernetes_version" {
  description = "The version of Kubernetes, such as 1.35.0; without it, the one of the Talos provider."
  type        = string
  default     = null
}

variable "nodes" {
  description = "The nodes of the cluster, by name. `role` is controlplane or worker, `node_name` the Proxmox node, `address` the static address with its prefix."
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
}

variable "gateway" {
  description = "The IPv4 gateway of the nodes."
  type        = string
}

variable "nameservers" {
  description = "The DNS servers of the nodes."
  type        = list(string)
}

variable "vip" {
  description = "An address that the control planes share, for the Kubernetes API."
  type        = string
  default     = null
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

variable "datastore_id" {
  description = "The datastore of the disks."
  type        = string
  default     = "local-lvm"
}

variable "image_datastore_id" {
  description = "The datastore of the Talos image; it has to hold the content `import`."
  type        = string
  default     = "local"
}

variable "cni" {
  description = "What Talos installs as the network of Kubernetes: flannel, or none."
  type        = string
  default     = "flannel"
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

variable "check_health" {
  description = "Whether an apply waits until the cluster is healthy. Set it to false to plan while the cluster is down."
  type        = bool
  default     = true
}
