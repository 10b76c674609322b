"""`python -m dfmesh` is `dfmesh`."""

from dfmesh.cli import main

if __name__ == "__main__":
    main()
