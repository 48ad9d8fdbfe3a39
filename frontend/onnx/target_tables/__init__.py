"""What runtimes support that cannot be asked: a JSON file each, with source and date."""
