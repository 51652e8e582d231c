#!/bin/sh
# Plan, apply and test this site on a lab, and remove everything. It needs stackyard, OpenTofu and jq.
set -eu
cd "$(dirname "$0")"

# A cluster without hardware, on any free port. Its password is for this run only.
stackyard lab up --name ci --port 0 --nodes pve1 --json > lab.json
trap 'stackyard lab down --name ci; rm -rf lab.json nodes secrets.yaml' EXIT

# Connect the site to it, as you would connect it to a Proxmox of your own.
STACKYARD_PVE_PASSWORD="$(jq -r .password lab.json)" stackyard connect "$(jq -r .url lab.json)" \
    --user root@pam --fingerprint "$(jq -r .fingerprint lab.json)" --yes

stackyard site validate
stackyard plan app
stackyard apply app

# A second plan has nothing to do: exit status 0.
stackyard plan app --detailed-exitcode

# What the cluster has is what was meant.
stackyard output app --json | jq -e '[.guests[].name] | sort == ["app", "proxy"]'

stackyard destroy app --allow-destroy app,proxy
