"""CertificateSigningRequests: kubelets' are approved, approved ones signed, old ones removed."""
