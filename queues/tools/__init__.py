"""Tools: doctor, repair, copy and backup of whole stores."""
