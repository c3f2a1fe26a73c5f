"""The papers' specs: facts only, one file a paper."""
