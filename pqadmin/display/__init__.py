"""Display: how numbers, times, names, values and errors are written."""
