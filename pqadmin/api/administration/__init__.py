"""Operations on people, tokens and boards: what admins change on the site itself."""
