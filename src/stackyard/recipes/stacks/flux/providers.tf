terraform {
  required_version = ">= 1.11"

  required_providers {
    flux = {
      source  = "fluxcd/flux"
      version = "~> 1.8"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.38"
    }
  }
}

provider "kubernetes" {
  host                   = var.kubernetes.host
  cluster_ca_certificate = var.kubernetes.cluster_ca_certificate
  client_certificate     = var.kubernetes.client_certificate
  client_key             = var.kubernetes.client_key
}

provider "flux" {
  kubernetes = {
    host                   = var.kubernetes.host
    cluster_ca_certificate = var.kubernetes.cluster_ca_certificate
    client_certificate     = var.kubernetes.client_certificate
    client_key             = var.kubernetes.client_key
  }
  git = {
    url    = var.git_url
    branch = var.git_branch
    # For ssh://, have `ssh = { username = "git", private_key = var.git_private_key }` in place of it: the
    # provider refuses both, and one that is chosen by an expression.
    http = {
      username = var.git_username
      password = var.git_token
    }
  }
}
