"""The pictures of the documents: taken from the real site by `make pictures`, compared with the site in the tests."""
