"""Request bodies in Kubernetes' protobuf form, read into the dicts that JSON would give.

kubectl's typed commands and most Go clients send it. Answers are always JSON, which all of
them accept. Pure.
"""
