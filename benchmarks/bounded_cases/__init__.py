"""The cases in which memory has to stay bounded, and what is common to them."""
