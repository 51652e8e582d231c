output "id" {
  description = "The ID of the instance."
  value       = aws_instance.this.id
}

output "arn" {
  description = "The ARN of the instance."
  value       = aws_instance.this.arn
}

output "name" {
  description = "The name of the instance."
  value       = var.name
}

output "private_ip" {
  description = "The private IPv4 address."
  value       = aws_instance.this.private_ip
}

output "public_ip" {
  description = "The public IPv4 address; null without one."
  value       = aws_instance.this.public_ip == "" ? null : aws_instance.this.public_ip
}

output "private_dns" {
  description = "The DNS name inside the VPC."
  value       = aws_instance.this.private_dns
}

output "public_dns" {
  description = "The public DNS name; null without a public address."
  value       = aws_instance.this.public_dns == "" ? null : aws_instance.this.public_dns
}

output "availability_zone" {
  description = "The availability zone that the instance is in."
  value       = aws_instance.this.availability_zone
}

output "security_group_id" {
  description = "The ID of the security group of the instance; null without one of its own."
  value       = one(aws_security_group.this[*].id)
}

output "key_name" {
  description = "The name of its key pair; null without one."
  value       = aws_instance.this.key_name
}

output "root_volume_id" {
  description = "The ID of the root volume."
  value       = one(aws_instance.this.root_block_device[*].volume_id)
}
