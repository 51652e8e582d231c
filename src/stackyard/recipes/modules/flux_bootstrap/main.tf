resource "kubernetes_namespace_v1" "flux" {
  metadata {
    name = var.namespace
  }

  # Flux labels its namespace.
  lifecycle {
    ignore_changes = [metadata[0].annotations, metadata[0].labels]
  }
}

# The key is there before the controllers are, so the first reconciliation decrypts.
resource "kubernetes_secret_v1" "sops_age" {
  metadata {
    name      = var.age_secret_name
    namespace = kubernetes_namespace_v1.flux.metadata[0].name
  }

  # Write-only: the cluster gets the key, and the state does not.
  data_wo = {
    "age.agekey" = var.age_key
  }
  data_wo_revision = var.age_key_revision
}

resource "flux_bootstrap_git" "this" {
  path               = var.path
  namespace          = kubernetes_namespace_v1.flux.metadata[0].name
  interval           = var.interval
  components_extra   = var.components_extra
  network_policy     = true
  embedded_manifests = true
  # The namespace belongs to the resource above.
  keep_namespace = true
  # The manifests in git outlive a cluster: the next one is made from them.
  delete_git_manifests = var.delete_git_manifests

  depends_on = [kubernetes_secret_v1.sops_age]
}
