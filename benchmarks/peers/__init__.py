"""The peers: other systems that state the same work, each written as a competent user of it would."""
