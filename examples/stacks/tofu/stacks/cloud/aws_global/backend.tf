# The store of stackyard. For a bucket of your own, use `backend "s3"` with a key for each stack.
terraform {
  backend "http" {}
}
