module "flux" {
  source = "../../../modules/flux_bootstrap"

  path             = var.path
  age_key          = var.age_key
  age_key_revision = var.age_key_revision
}
