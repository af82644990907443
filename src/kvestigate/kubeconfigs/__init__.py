"""`kubeconfig`: what is in kubeconfig files, whether it works, and the same in other forms."""
