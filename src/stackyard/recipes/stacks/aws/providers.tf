terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

# The credentials are not in the code: AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the
# role of the machine that runs this. If they come from secrets.tfvars, aws_credentials has them.
provider "aws" {
  region     = var.region
  access_key = var.aws_credentials == null ? null : var.aws_credentials.access_key
  secret_key = var.aws_credentials == null ? null : var.aws_credentials.secret_key
  token      = var.aws_credentials == null ? null : var.aws_credentials.token

  default_tags {
    tags = var.tags
  }
}
