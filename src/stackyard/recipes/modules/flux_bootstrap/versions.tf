terraform {
  # Write-only arguments.
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
