module "flux" {
  source = "../../../modules/flux_bootstrap"

  path    = var.path
  age_key = var.age_key
}
