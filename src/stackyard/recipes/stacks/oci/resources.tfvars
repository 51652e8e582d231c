region         = "eu-frankfurt-1"
compartment_id = "ocid1.compartment.oc1..put-yours-here"

subnets = {
  front = "ocid1.subnet.oc1.eu-frankfurt-1.put-yours-here"
}

instances = {
  edge = {
    subnet              = "front"
    availability_domain = "Uocm:EU-FRANKFURT-1-AD-1"
    image_id            = "ocid1.image.oc1.eu-frankfurt-1.put-yours-here"
    shape_config        = { ocpus = 1, memory_gib = 6 }
    public_ip           = true
    ssh_public_keys     = ["ssh-ed25519 put-your-key-here"]
    ssh_user            = "ubuntu"
    groups              = ["edge"]
  }
}
