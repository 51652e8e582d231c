git_url = "https://git.example.org/home/cluster.git"
path    = "clusters/prod"
