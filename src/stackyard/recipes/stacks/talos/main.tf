module "cluster" {
  source = "../../../modules/talos_cluster"

  cluster_name                       = var.cluster_name
  talos_version                      = var.talos_version
  kubernetes_version                 = var.kubernetes_version
  nodes                              = var.nodes
  gateway                            = var.gateway
  nameservers                        = var.nameservers
  vip                                = var.vip
  bridge                             = var.bridge
  vlan_id                            = var.vlan_id
  datastore_id                       = var.datastore_id
  image_datastore_id                 = var.image_datastore_id
  cni                                = var.cni
  allow_scheduling_on_control_planes = var.allow_scheduling_on_control_planes
  config_patches                     = var.config_patches
  check_health                       = var.check_health
}
