"""One season's way through its steps, and the levers by which a person moves it."""
