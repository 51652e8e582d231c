region = "eu-central-1"

tags = { managed-by = "stackyard" }

networks = {
  main = { cidr = "10.20.0.0/16" }
}

subnets = {
  front = { network = "main", cidr = "10.20.1.0/24", availability_zone = "eu-central-1a", public = true }
  back  = { network = "main", cidr = "10.20.2.0/24", availability_zone = "eu-central-1a" }
}

# Put the ID of an image of your region here:
#   aws ec2 describe-images --owners 136693071363 --filters 'Name=name,Values=debian-13-amd64-*'
instances = {
  web = {
    subnet   = "front"
    ami_id   = "ami-00000000000000000"
    ssh_user = "admin"
    groups   = ["web"]
    ingress = {
      https = { from_port = 443, cidr = "0.0.0.0/0" }
    }
  }
}
