output "id" {
  description = "The ID of the bucket, which is its name."
  value       = aws_s3_bucket.this.id
}

output "arn" {
  description = "The ARN of the bucket."
  value       = aws_s3_bucket.this.arn
}

output "name" {
  description = "The name of the bucket."
  value       = aws_s3_bucket.this.bucket
}

output "domain_name" {
  description = "The DNS name of the bucket in its region."
  value       = aws_s3_bucket.this.bucket_regional_domain_name
}
