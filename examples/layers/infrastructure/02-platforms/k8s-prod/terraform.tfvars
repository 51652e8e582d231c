cluster_name = "k8s-prod"
nodes_count  = 2
