"""What the sites of the weather day do: the adapters that `weather.dfm.yaml` names.

Heavy libraries are imported inside the functions: `app` never loads pyarrow, a national service never loads Pillow.
"""
