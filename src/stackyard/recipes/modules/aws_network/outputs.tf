output "vpc_id" {
  description = "The ID of the VPC."
  value       = aws_vpc.this.id
}

output "vpc_arn" {
  description = "The ARN of the VPC."
  value       = aws_vpc.this.arn
}

output "name" {
  description = "The name of the VPC."
  value       = var.name
}

output "cidr" {
  description = "The IPv4 range of the VPC."
  value       = aws_vpc.this.cidr_block
}

output "subnet_ids" {
  description = "The IDs of the subnets, by name."
  value       = { for name, subnet in aws_subnet.this : name => subnet.id }
}

output "subnet_arns" {
  description = "The ARNs of the subnets, by name."
  value       = { for name, subnet in aws_subnet.this : name => subnet.arn }
}

output "internet_gateway_id" {
  description = "The ID of the internet gateway; null without a public subnet."
  value       = one(aws_internet_gateway.this[*].id)
}
