terraform {
  required_version = ">= 1.10"

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
