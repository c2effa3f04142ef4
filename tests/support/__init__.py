"""What tests share. Import it as `from support.data import shared_data`."""
