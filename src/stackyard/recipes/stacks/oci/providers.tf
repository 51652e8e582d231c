terraform {
  required_version = ">= 1.9"

  required_providers {
    oci = {
      source  = "oracle/oci"
      version = "~> 7.0"
    }
  }
}

# The credentials are not in the code: a profile of ~/.oci/config, or OCI_tenancy_ocid and the like in the
# environment. If they come from secrets.tfvars, oci_credentials has them.
provider "oci" {
  region              = var.region
  config_file_profile = var.oci_credentials == null ? var.config_file_profile : null
  tenancy_ocid        = var.oci_credentials == null ? null : var.oci_credentials.tenancy_ocid
  user_ocid           = var.oci_credentials == null ? null : var.oci_credentials.user_ocid
  fingerprint         = var.oci_credentials == null ? null : var.oci_credentials.fingerprint
  private_key         = var.oci_credentials == null ? null : var.oci_credentials.private_key
}
