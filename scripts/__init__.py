"""Programs that maintain the project; users of stackyard need none of them."""
