"""Search engines by configuration: Elasticsearch, OpenSearch, Qdrant and pgvector."""
