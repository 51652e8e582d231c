terraform {
  required_version = ">= 1.9"

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
