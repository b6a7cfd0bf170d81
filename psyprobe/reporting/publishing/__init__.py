"""Publish results in a registry, a folder of small files that anyone can host, and check one."""
